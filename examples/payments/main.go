// Command payments moves money between accounts, exactly once.
package main

func main() {}
