package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// Hosts of the scripts are network namespaces of this machine, joined by a bridge: what
// runs in them reaches the others by TCP alone.

// ip runs the program of that name.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// canMakeHosts says whether this process may make network namespaces.
func canMakeHosts() bool {
	name := fmt.Sprintf("mxtry%d", rand.IntN(1e6))
	if os.Getuid() != 0 || ip("netns", "add", name) != nil {
		return false
	}
	defer ip("netns", "del", name)
	return ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name) == nil
}

// makeHosts makes hosts for a script: hosts N. They are $NET1 to $NETN, have the addresses
// 10.77.0.1 to 10.77.0.N on eth0, and hang on the links ${NET}v1 to ${NET}vN. The file
// "agent" is a remote shell to them for mpirun.
func makeHosts(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(strings.Join(args, " "))
	if neg || err != nil {
		ts.Fatalf("usage: hosts N")
	}
	net := fmt.Sprintf("mx%d", rand.IntN(1e6))
	ts.Defer(func() {
		for i := range n {
			_ = ip("netns", "del", fmt.Sprint(net, i+1))
		}
		_ = ip("link", "del", net)
	})
	ts.Check(ip("link", "add", net, "type", "bridge"))
	ts.Check(ip("link", "set", net, "up"))
	for i := 1; i <= n; i++ {
		host, cable := fmt.Sprint(net, i), fmt.Sprint(net, "v", i)
		ts.Check(ip("netns", "add", host))
		ts.Check(ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", host))
		ts.Check(ip("link", "set", cable, "master", net, "up"))
		ts.Check(ip("-n", host, "addr", "add", fmt.Sprintf("10.77.0.%d/24", i), "dev", "eth0"))
		ts.Check(ip("-n", host, "link", "set", "eth0", "up"))
		ts.Check(ip("-n", host, "link", "set", "lo", "up"))
	}
	ts.Setenv("NET", net)
	agent := `#!/bin/sh
# A remote shell: agent [options] HOST COMMAND...
while [ "${1#-}" != "$1" ]; do shift; done
host=` + net + `${1##*.}; shift
exec ip netns exec $host unshare --uts sh -c "hostname $host; $*"
`
	ts.Check(os.WriteFile(ts.MkAbs("agent"), []byte(agent), 0o755))
}

// longWire joins namespaces by a network of its own, far0 with 10.78.0.I, on which every
// packet takes a given time: longwire DELAY NAMESPACE... It runs until it is told to end.
// (Linux has netem for this, where it is built with it.)
func longWire() {
	if err := relay(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "longwire:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func relay(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: longwire DELAY NAMESPACE NAMESPACE...")
	}
	delay, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	ends := map[uint32]*os.File{} // by address
	for i, namespace := range args[1:] {
		end, err := farEnd(namespace, i+1)
		if err != nil {
			return err
		}
		ends[10<<24|78<<16|uint32(i+1)] = end
	}
	for _, end := range ends {
		go carry(end, ends, delay)
	}
	fmt.Println("the wire is up")
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	return nil
}

// farEnd makes a namespace's end of the wire.
func farEnd(namespace string, i int) (*os.File, error) {
	type made struct {
		file *os.File
		err  error
	}
	result := make(chan made)
	go func() {
		runtime.LockOSThread() // and never unlocked: this thread is in the namespace for good
		file, err := tunIn(namespace)
		result <- made{file, err}
	}()
	end := <-result
	if end.err != nil {
		return nil, fmt.Errorf("%s: %w", namespace, end.err)
	}
	for _, args := range [][]string{
		{"-n", namespace, "addr", "add", fmt.Sprintf("10.78.0.%d/24", i), "dev", "far0"},
		{"-n", namespace, "link", "set", "far0", "up"},
	} {
		if err := ip(args...); err != nil {
			return nil, err
		}
	}
	return end.file, nil
}

func tunIn(namespace string) (*os.File, error) {
	ns, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq("far0")
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "far0"), nil
}

// carry takes packets from one end and delivers them at others, in order, each after the
// delay.
func carry(from *os.File, ends map[uint32]*os.File, delay time.Duration) {
	type packet struct {
		data []byte
		due  time.Time
	}
	queue := make(chan packet, 1<<14)
	go func() {
		for p := range queue {
			time.Sleep(time.Until(p.due))
			if to := ends[binary.BigEndian.Uint32(p.data[16:])]; to != nil {
				_, _ = to.Write(p.data)
			}
		}
	}()
	for {
		data := make([]byte, 1<<16)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		if n >= 20 && data[0]>>4 == 4 {
			queue <- packet{data[:n], time.Now().Add(delay)}
		}
	}
}
