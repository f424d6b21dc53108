module github.com/foliot/foliot/clients/go

go 1.24
