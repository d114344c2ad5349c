package main

import "context"

func draw(context.Context, config) error { return nil }
