"""AFL texts that the tests of the commands share."""

from __future__ import annotations

GOOD = """\
/** Says hello. */
namespace demo {
  /**
   * Makes a greeting.
   * @param name who is greeted
   * @return text the greeting
   */
  event facet Greet(name: String, times: Int = 1) => (text: String) with Retry(max_attempts = 2)

  /** Greets a person. */
  workflow Hello(name: String = "world") => (text: String) andThen {
    hello = Greet(name = $.name)
    yield Hello(text = hello.text)
  }
}
"""

UGLY = "namespace   demo{facet Box(size:Int)\n}"
PRETTY = "namespace demo {\n  facet Box(size: Int)\n}\n"

UNKNOWN_TYPE = """\
namespace demo {
  event facet Greet(name: Strin) => (text: String)
}
"""

WARNING = """\
namespace other {
  schema Thing { name: String }
}
namespace demo {
  use other
  event facet Greet(name: String) => (text: String)
}
"""

SYNTAX_ERROR = "namespace demo {\n  facet Box(size: Int\n}\n"

EVERYTHING = """\
/** The shop. */
namespace shop {
  enum Size { small, large }
  schema Item { sku: String, size: Size = small }

  event facet Load(id: String) => (items: [Item], total: Double)
  event facet Charge(total: Double) => (receipt: String)
    with Retry(delay = 90s)
    with Effect(kind = keyed)
  event facet Ask(question: String) => (yes: Boolean) with Human(group = "sales")
  event facet Risk(total: Double) => (score: Double)
    prompt { template "How risky is {total}?" tools [Load] }
  facet Note(text: String)
  facet Group(name: String) => (receipt: String)

  workflow Sub(x: String) => (y: String) andThen {
    yield Sub(y = $.x)
  }

  /** Handles an order. */
  workflow Order(id: String) => (state: String, log: [String])
    catch {
      yield Order(state = error.message, log = [])
    }
    andThen {
      order = Load(id = $.id)
      risk = Risk(total = order.total)
      first = Item(sku = $.id)
      sub = Sub(x = first.sku)
      note = Note(text = sub.y)
      pay = Charge(total = order.total) after risk catch {
        yield Charge(receipt = "none")
      }
      group = Group(name = note.text) andThen {
        inner = Charge(total = risk.score)
        yield Group(receipt = inner.receipt)
      }
      sys.log(receipt = group.receipt)
    }
    andThen foreach item in order.items limit 4 {
      each = Sub(x = $.item.sku)
      yield Order(log = [each.y])
    }
    andThen when {
      case risk.score > 0.5 && pay.receipt != "a \\"b\\" <c> & d" => {
        ask = Ask(question = pay.receipt)
        yield Order(state = "asked " ++ ask.yes)
      }
      case _ => {
        yield Order(state = "fine")
      }
    }

  schedule nightly = Order(id = "1") cron "0 2 * * *" zone "Europe/Berlin"
  schedule often = Order(id = "2") every 15m
}
"""
