package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// touched is how much memory is touched before a run: the output that the broker
// keeps in its page cache, and the application itself.
const touched = 3 << 30

// touchedText is what reports say of it.
const touchedText = "Before each run 3 GB of memory are used, and given back as it begins: a virtual machine's first use of a page is slow.\n"

// touchMemory uses memory until it is given back, so that a run finds pages that
// exist. Free memory of a virtual machine may go back to its host within seconds
// (free page reporting), and a page that comes back from there costs some 10 us;
// runs that used pages for the first time were half as fast as others, by chance.
// It does nothing where memory is short.
func touchMemory() (giveBack func() error, err error) {
	if availableMemory() < 2*touched {
		return func() error { return nil }, nil
	}
	m, err := syscall.Mmap(-1, 0, touched, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory before a run: %w", err)
	}
	for i := 0; i < len(m); i += os.Getpagesize() {
		m[i] = 1
	}
	return func() error { return syscall.Munmap(m) }, nil
}

// startWarm starts a child that finds memory as it has begun to run.
func startWarm(ctx context.Context, s spec) (*process, error) {
	giveBack, err := touchMemory()
	if err != nil {
		return nil, err
	}
	p, err := start(s)
	if err != nil {
		return nil, errors.Join(err, giveBack())
	}
	_, err = p.await(ctx, "it runs", 0, isState("running"))
	if err = errors.Join(err, giveBack()); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// availableMemory is in bytes, 0 where it is not known.
func availableMemory() int64 {
	kb, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemAvailable"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}
