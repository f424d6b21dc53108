// Thumbnails of pictures, made by workers.
//
//	thumbnails draw DIRECTORY NUMBER   draws pictures to try it with
//	thumbnails worker                  runs jobs until Ctrl-C
//	thumbnails submit DIRECTORY        submits a job for each picture, and prints what became of them
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, arguments []string) error {
	switch {
	case len(arguments) == 3 && arguments[0] == "draw":
		number, err := strconv.Atoi(arguments[2])
		if err != nil {
			return err
		}
		return draw(arguments[1], number)
	case len(arguments) == 1 && arguments[0] == "worker":
		return newWorker().Run(ctx)
	case len(arguments) == 2 && arguments[0] == "submit":
		return submit(ctx, arguments[1])
	}
	return fmt.Errorf("usage: thumbnails draw DIRECTORY NUMBER | worker | submit DIRECTORY")
}
