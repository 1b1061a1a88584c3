// A Kubernetes API server and its etcd in one process, for the tests of sources that follow a cluster: every part that
// decides is the real one. Arguments: a folder for etcd, two free ports, and then flags of kube-apiserver without those
// of etcd. SIGUSR1 makes etcd forget every version but the newest.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder, clientPort, peerPort string, flags []string) error {
	config := embed.NewConfig()
	config.Dir = folder
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	client := url.URL{Scheme: "http", Host: "127.0.0.1:" + clientPort}
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:" + peerPort}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer etcd.Close()
	<-etcd.Server.ReadyNotify()
	go compactWhenTold(etcd)
	command := app.NewAPIServerCommand()
	command.SetArgs(append(flags, "--etcd-servers="+client.String()))
	return command.Execute()
}

func compactWhenTold(etcd *embed.Etcd) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	for range told {
		request := etcdserverpb.CompactionRequest{Revision: etcd.Server.KV().Rev(), Physical: true}
		if _, err := etcd.Server.Compact(context.Background(), &request); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Fprintln(os.Stderr, "compacted")
	}
}
