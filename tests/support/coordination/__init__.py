"""Real etcd and ZooKeeper for tests."""
