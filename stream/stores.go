package stream

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// stores opens the engines of an app's tasks, each in a directory of its own
// below the state directory.
type stores struct {
	dir    string
	memory bool
	budget *state.Budget
	log    *zap.Logger
	unlock func() error
}

// openStores opens the state directory and finds the instance's id in it. A
// second process on the same directory is refused.
func openStores(cfg Config) (*stores, string, error) {
	s := &stores{dir: cfg.StateDir, memory: cfg.InMemory, log: cfg.Logger}
	if s.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, "", fmt.Errorf("semel: no cache directory for the state: %w; set Config.StateDir", err)
		}
		s.dir = filepath.Join(cache, "semel", cfg.AppID)
	}
	if s.memory && cfg.StateDir == "" {
		return s, orNew(cfg.InstanceID), nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, "", dirFault("the state directory cannot be made", s.dir, err, "set Config.StateDir to one that can be written")
	}
	unlock, err := state.LockDir(s.dir)
	if err != nil {
		return nil, "", dirFault("the state directory cannot be used", s.dir, err, "give each process of an app a Config.StateDir of its own")
	}
	s.unlock = unlock
	id, err := instanceID(s.dir, cfg.InstanceID)
	if err != nil {
		_ = unlock() // err is the reason
		return nil, "", err
	}
	budget := cfg.MemoryBudget
	if budget <= 0 {
		budget = 256 << 20
	}
	s.budget = state.NewBudget(budget/2, 1000)
	return s, id, nil
}

func dirFault(what, dir string, err error, do string) error {
	return &runtime.Fault{Code: "SEMEL-STATE-DIR", What: what, Where: dir, Err: err, Do: do}
}

func orNew(id string) string {
	if id != "" {
		return id
	}
	b := make([]byte, 8)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// instanceID is the configured id, or the one that the directory remembers, or
// a new one that it remembers from now on.
func instanceID(dir, configured string) (string, error) {
	file := filepath.Join(dir, "instance")
	if configured == "" {
		b, err := os.ReadFile(file)
		if id := strings.TrimSpace(string(b)); err == nil && id != "" {
			return id, nil
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", dirFault("the instance id cannot be read", file, err, "mend the state directory, or set Config.InstanceID")
		}
	}
	id := orNew(configured)
	if err := os.WriteFile(file, []byte(id+"\n"), 0o600); err != nil {
		return "", dirFault("the instance id cannot be kept", file, err, "see that the state directory can be written and its disk has room")
	}
	return id, nil
}

// Open implements runtime.Stores.
func (s *stores) Open(t seam.Task, inMemory bool) (state.Engine, error) {
	if inMemory || s.memory {
		return state.NewMemory(), nil
	}
	return state.OpenPebble(s.taskDir(t), s.options())
}

// OpenGlobal implements runtime.GlobalStores.
func (s *stores) OpenGlobal(store string, inMemory bool) (state.Engine, error) {
	if inMemory || s.memory {
		return state.NewMemory(), nil
	}
	return state.OpenPebble(s.globalDir(store), s.options())
}

// QuarantineGlobal implements runtime.GlobalStores.
func (s *stores) QuarantineGlobal(store string) (moved string, err error) {
	return state.Quarantine(s.globalDir(store), s.options())
}

// globalDir is below a directory that no task's is named like.
func (s *stores) globalDir(store string) string { return filepath.Join(s.dir, "global", store) }

// Quarantine implements runtime.Quarantiner.
func (s *stores) Quarantine(t seam.Task) (moved string, err error) {
	return state.Quarantine(s.taskDir(t), s.options())
}

func (s *stores) taskDir(t seam.Task) string { return filepath.Join(s.dir, t.String()) }

func (s *stores) options() state.PebbleOptions {
	return state.PebbleOptions{Budget: s.budget, Logger: s.log}
}

func (s *stores) close() {
	if s.budget != nil {
		s.budget.Close()
	}
	if s.unlock != nil {
		if err := s.unlock(); err != nil {
			s.log.Warn("unlocking the state directory", zap.Error(err))
		}
	}
}
