"""The parts of `afl.messaging.mongo_coordinator`, on the database of the kernel's MongoDB store.

    mail         every operation of a mailbox; what blocks is not async here
    sending      messages into mailboxes, in a transaction
    receiving    messages out of mailboxes
    burials      dead letters: who becomes one, who comes back
    answers      asking again if an answer was lost
    boxes        the settings, and what is counted of each mailbox
    documents    documents to values, and values to documents

`migrations/` has the collections. A message is in one of them at a time: `mail` while it lives,
`mail_dead` when it was given up, none when it was acknowledged; `mailbox` knows how many went which
way. Everything that changes more than one document is a transaction. Receiving changes one document
for each message, without a transaction: who comes second finds the message taken and takes another,
where transactions would all begin again.
"""
