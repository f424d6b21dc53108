// A worker of a shop. FOLIOT_TOKEN=... go run ./examples/shop
package main

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	foliot "github.com/foliot/foliot/clients/go"
)

func main() {
	worker := &foliot.Worker{Queues: map[string]int{"default": 10}}
	worker.Task("send_invoice", func(ctx context.Context, run *foliot.Run) (any, error) {
		var asked struct {
			CustomerID int `json:"customer_id"`
		}
		if err := run.Payload(&asked); err != nil {
			return nil, err
		}
		fmt.Fprintf(run, "invoice for customer %d\n", asked.CustomerID)
		return map[string]bool{"sent": true}, nil
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
