"""The cases of the suite for mailboxes, one module for each part of the port."""
