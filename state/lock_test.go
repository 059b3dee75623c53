package state_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelstream/semel/state"
)

// holdEnv makes the test program hold a directory instead of running tests.
const holdEnv = "SEMEL_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		hold(dir)
		return
	}
	os.Exit(m.Run())
}

func hold(dir string) {
	if _, err := state.OpenPebble(dir, state.PebbleOptions{}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the parent ends
}

func TestTwoOpensOfOneDirectoryFailWithTheHoldersName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e, err := state.OpenPebble(dir, state.PebbleOptions{})
	must(t, err)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	for _, name := range []string{dir, dir + "/../state/", link} {
		_, err = state.OpenPebble(name, state.PebbleOptions{})
		wantHolder(t, err, os.Getpid())
		_, err = state.Quarantine(name, state.PebbleOptions{})
		wantHolder(t, err, os.Getpid())
		wantHolder(t, state.Remove(name, state.PebbleOptions{}), os.Getpid())
	}
	must(t, e.Close())
	e, err = state.OpenPebble(dir, state.PebbleOptions{})
	must(t, err)
	must(t, e.Close())
}

func wantHolder(t *testing.T, err error, pid int) {
	t.Helper()
	if !errors.Is(err, state.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on ", pid)) {
		t.Errorf("a second open: %v", err)
	}
}

func TestALockOfADeadProcessIsTakenOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holdEnv+"="+dir)
	stdin, err := child.StdinPipe()
	must(t, err)
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if line != "held\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	_, err = state.OpenPebble(dir, state.PebbleOptions{})
	wantHolder(t, err, child.Process.Pid)

	must(t, child.Process.Kill())
	_ = child.Wait() // killed
	e, err := state.OpenPebble(dir, state.PebbleOptions{})
	must(t, err)
	defer e.Close()
	_, err = state.OpenPebble(dir, state.PebbleOptions{})
	wantHolder(t, err, os.Getpid())
}
