package main

import (
	"context"
	"image"
	"image/color"
)

// shrink makes a picture of this width. Each of its pixels is the average of those it stands for. It stops when the
// context ends, since nobody can stop a function in Go.
func shrink(ctx context.Context, picture image.Image, width int, progress func(float64)) (*image.RGBA, error) {
	from := picture.Bounds()
	width = max(1, min(width, from.Dx()))
	height := max(1, from.Dy()*width/from.Dx())
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		progress(float64(y) / float64(height))
		for x := range width {
			small.Set(x, y, average(picture, image.Rect(
				from.Min.X+x*from.Dx()/width, from.Min.Y+y*from.Dy()/height,
				from.Min.X+(x+1)*from.Dx()/width, from.Min.Y+(y+1)*from.Dy()/height,
			)))
		}
	}
	return small, nil
}

func average(picture image.Image, area image.Rectangle) color.Color {
	var sum [4]uint64
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			r, g, b, a := picture.At(x, y).RGBA()
			sum = [4]uint64{sum[0] + uint64(r), sum[1] + uint64(g), sum[2] + uint64(b), sum[3] + uint64(a)}
		}
	}
	count := uint64(area.Dx() * area.Dy())
	return color.RGBA64{
		uint16(sum[0] / count), uint16(sum[1] / count), uint16(sum[2] / count), uint16(sum[3] / count),
	}
}
