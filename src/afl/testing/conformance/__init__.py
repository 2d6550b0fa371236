"""The judge of kernel stores: whoever passes is a store.

`harness` is what a store's own tests supply: the store, a way to let time pass, and a way to see
its transactions. `suite.ConformanceSuite` is a pytest class to inherit from. `machine` plays random
games against any number of stores at once and against `reference`, a store that is too simple to
be wrong. `invariants` checks I1 to I12 from what the port shows.

    class TestMemory(ConformanceSuite):
        @pytest.fixture
        def harness(self) -> Harness:
            return MemoryHarness()
"""
