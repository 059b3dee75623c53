// Package changelog keeps a store's history in a compacted topic and rebuilds
// the store from it.
//
// The format is Kafka Streams': plain key and value bytes, the record's
// timestamp is the row's, a null value deletes, and the partition is the
// task's, set explicitly and not by hash.
package changelog

// Name is the changelog topic of a store.
func Name(app, store string) string { return app + "-" + store + "-changelog" }

// Config is what a new changelog topic of a key-value store is made with;
// extra comes on top.
func Config(extra map[string]string) map[string]string {
	c := map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
	for k, v := range extra {
		c[k] = v
	}
	return c
}
