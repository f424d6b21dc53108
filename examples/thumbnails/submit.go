package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	foliot "github.com/foliot/foliot/clients/go"
)

// submit submits a job for each picture, then waits for all of them.
func submit(ctx context.Context, directory string) error {
	paths, err := filepath.Glob(filepath.Join(directory, "*.png"))
	if err != nil {
		return err
	}
	client := foliot.NewClient(foliot.Address{})
	jobs := map[string]string{}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		job, err := client.Submit(ctx, foliot.Job{Task: task, Queue: queue, Payload: asked{absolute}, TimeoutSeconds: 60})
		if err != nil {
			return err
		}
		jobs[path] = job.ID
	}
	finished := 0
	for _, path := range paths {
		var result made
		err := client.Result(ctx, jobs[path], &result)
		var failed *foliot.JobFailed
		switch {
		case err == nil:
			finished++
		case errors.As(err, &failed):
			fmt.Printf("%s: %s after %d attempt\n", filepath.Base(path), failed.Job.Error.Message, failed.Job.Attempt)
		default:
			return err
		}
	}
	fmt.Printf("%d of %d thumbnails\n", finished, len(paths))
	return nil
}
