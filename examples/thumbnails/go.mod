module example.org/thumbnails

go 1.24

require github.com/foliot/foliot/clients/go v0.1.0

replace github.com/foliot/foliot/clients/go => ../../clients/go
