package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"

	foliot "github.com/foliot/foliot/clients/go"
)

const (
	task  = "thumbnail"
	queue = "pictures"
	width = 160
)

type asked struct {
	Path string `json:"path"`
}

type made struct {
	Path   string `json:"path"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// newWorker has as many slots as there are cores: a thumbnail is all computation.
func newWorker() *foliot.Worker {
	worker := &foliot.Worker{Queues: map[string]int{queue: runtime.NumCPU()}}
	worker.Task(task, thumbnail, foliot.TaskOptions{Queue: queue, Description: "Makes the thumbnail of a picture"})
	return worker
}

func thumbnail(ctx context.Context, run *foliot.Run) (any, error) {
	var job asked
	if err := run.Payload(&job); err != nil {
		return nil, err
	}
	picture, err := read(job.Path)
	if err != nil {
		return nil, err
	}
	small, err := shrink(ctx, picture, width, func(share float64) { run.Progress(share, filepath.Base(job.Path)) })
	if err != nil {
		return nil, err
	}
	target := filepath.Join(filepath.Dir(job.Path), "small", filepath.Base(job.Path))
	if err := write(target, small); err != nil {
		return nil, err
	}
	fmt.Fprintf(run, "wrote %s\n", target)
	return made{target, small.Bounds().Dx(), small.Bounds().Dy()}, nil
}

// read fails for good if the file is no picture. Anything else, such as a disk that is away, is worth another attempt.
func read(path string) (image.Image, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", foliot.ErrFail, err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %s is not a picture: %w", foliot.ErrFail, filepath.Base(path), err)
	}
	return picture, nil
}

// write leaves a whole file or none, however often a run is repeated.
func write(path string, picture image.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "*.part")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(png.Encode(file, picture), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
