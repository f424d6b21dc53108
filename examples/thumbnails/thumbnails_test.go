package main

import (
	"context"
	"errors"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"testing"

	foliot "github.com/foliot/foliot/clients/go"
)

func TestShrinkKeepsTheShapeAndAveragesTheColours(t *testing.T) {
	picture := image.NewGray(image.Rect(0, 0, 400, 200))
	for x := range 400 {
		for y := range 200 {
			picture.SetGray(x, y, color.Gray{uint8(x % 2 * 200)})
		}
	}
	small, err := shrink(context.Background(), picture, 100, func(float64) {})
	if err != nil {
		t.Fatal(err)
	}
	if small.Bounds().Dx() != 100 || small.Bounds().Dy() != 50 {
		t.Fatalf("the thumbnail has %v", small.Bounds())
	}
	if got := small.RGBAAt(20, 20); got != (color.RGBA{100, 100, 100, 255}) {
		t.Fatalf("black and white became %v", got)
	}
}

func TestShrinkStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := shrink(ctx, image.NewGray(image.Rect(0, 0, 9, 9)), 3, func(float64) {}); !errors.Is(err, context.Canceled) {
		t.Fatalf("it returned %v", err)
	}
}

func TestASmallPictureStaysAsItIs(t *testing.T) {
	small, err := shrink(context.Background(), image.NewGray(image.Rect(0, 0, 7, 1)), 160, func(float64) {})
	if err != nil || small.Bounds().Dx() != 7 || small.Bounds().Dy() != 1 {
		t.Fatalf("%v, %v", small.Bounds(), err)
	}
}

func TestAFileThatIsNoPictureFailsForGood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.png")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, path + ".gone"} {
		if _, err := read(path); !errors.Is(err, foliot.ErrFail) {
			t.Fatalf("%s: %v", path, err)
		}
	}
}

func TestAPictureIsWrittenWholeAndReadAgain(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "pictures")
	if err := draw(directory, 2); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(directory, "*"))
	if err != nil || len(names) != 2 {
		t.Fatalf("%v, %v", names, err)
	}
	if _, err := read(names[0]); err != nil {
		t.Fatal(err)
	}
}
