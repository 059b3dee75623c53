package state

import (
	"runtime"

	"github.com/cockroachdb/pebble/v2"
)

// A Budget is memory and open files that the Pebble engines of a process
// share: a cache of blocks and one of tables. Close it after the last engine.
type Budget struct {
	blocks *pebble.Cache
	files  *pebble.FileCache
}

// Defaults of a Budget.
const (
	defaultBlockBytes = 128 << 20
	defaultOpenFiles  = 4096
	ownBlockBytes     = 8 << 20 // of an engine without a Budget
	ownOpenFiles      = 256
)

// NewBudget makes a budget of cacheBytes (default 128 MiB) for blocks, and
// openFiles (default 4096) table files that stay open.
func NewBudget(cacheBytes int64, openFiles int) *Budget {
	if cacheBytes <= 0 {
		cacheBytes = defaultBlockBytes
	}
	if openFiles <= 0 {
		openFiles = defaultOpenFiles
	}
	return &Budget{
		blocks: pebble.NewCache(cacheBytes),
		files:  pebble.NewFileCache(runtime.GOMAXPROCS(0), openFiles),
	}
}

// Close frees the caches.
func (b *Budget) Close() {
	b.files.Unref()
	b.blocks.Unref()
}
