"""Membership of scheduler nodes in etcd or ZooKeeper. PostgreSQL decides who owns a shard."""
