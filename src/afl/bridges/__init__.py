"""Between flows, agents and mailboxes: the only code that sees more than one of their engines.

`prompt_facets` briefs turns that serve a prompt facet, `agent_briefs` those of agents in the
roster, `briefing` asks the right one. `offers` makes tools of facets, agents and MCP tools, as a
model sees them; `facet_tools` makes the calls of them, with the policies of the facets.
`claude_agent_runner` drives a run in one call: `run_in_hand` does what workers would, `any_facet`
briefs turns of facets without a prompt too, `taking` has all that is made born in its hands.
`mail_desk` serves what flows and turns send and ask, `mail_room` receives answers and messages that
start turns, `mail_messages` says what each is, `mail_tools` has the facets for agents.
`processes` serves the facets of `afl.exec` by commands, `sandboxed_scripts` runs scripts in the
sandbox.
Entry points: `briefing.AllBriefs`, `facet_tools.FacetTools`, `turn_stores.turn_store`,
`mail_desk.MailDesk`, `mail_room.MailRoom`, `claude_agent_runner.ClaudeAgentRunner`. May import:
lang, runtime, turns, messaging, exec and what they may.
"""
