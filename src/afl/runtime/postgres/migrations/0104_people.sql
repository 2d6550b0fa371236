-- Work that people do is found whatever else is in the queue.
create index task_people on afl.task (id) where list = 'afl.people' and state = 'ready';
