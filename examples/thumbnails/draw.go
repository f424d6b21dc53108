package main

import (
	"fmt"
	"image"
	"image/color"
	"path/filepath"
)

// draw draws pictures of 1200 by 800 pixels, each in its own colours.
func draw(directory string, number int) error {
	for one := range number {
		picture := image.NewRGBA(image.Rect(0, 0, 1200, 800))
		for y := range 800 {
			for x := range 1200 {
				picture.Set(x, y, color.RGBA{uint8(x * (one + 1) / 5), uint8(y / 4), uint8(40 * one), 255})
			}
		}
		if err := write(filepath.Join(directory, fmt.Sprintf("picture-%02d.png", one+1)), picture); err != nil {
			return err
		}
	}
	return nil
}
