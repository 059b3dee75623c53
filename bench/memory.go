package main

import (
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
const touchedText = "Before each run 3 GB of memory are used and given back: a virtual machine's first use of a page is slow.\n"

// touchMemory uses memory and gives it back, so that a run finds pages that
// exist. Free memory of a virtual machine may go back to its host within seconds
// (free page reporting), and a page that comes back from there costs some 10 us;
// runs that used pages for the first time were half as fast as others, by chance.
// It does nothing where memory is short.
func touchMemory() error {
	if availableMemory() < 2*touched {
		return nil
	}
	m, err := syscall.Mmap(-1, 0, touched, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("memory before a run: %w", err)
	}
	for i := 0; i < len(m); i += os.Getpagesize() {
		m[i] = 1
	}
	return syscall.Munmap(m)
}

// availableMemory is in bytes, 0 where it is not known.
func availableMemory() int64 {
	kb, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemAvailable"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}
