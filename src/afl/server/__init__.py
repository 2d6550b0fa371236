"""The HTTP API and the dashboard's files: what people and programs reach over the network.

    application   puts everything together; `serving` runs it as a process
    guarding      before a body is read: who asks (`access`, `tokens`, `oidc`), may they, do they
                  ask too often (`limits`), is it written down (`auditing`)
    routes        one module for each noun; they work on a `backend` and answer with `models`
    problems      everything that goes wrong, in one form
    store         what the server keeps for itself, in memory, in PostgreSQL or in MongoDB
    checks        what is deployed, served and stuck, for `afl doctor` too
    headers       what browsers are told to keep to; `files` sends them the dashboard

Every route names the role that it needs, or is open on purpose. What belongs to another tenant is
as if it were not there. What changes something is written down before it is done.
"""
