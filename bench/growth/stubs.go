package main

import "context"

func leases(context.Context, config) error      { return nil }
func connections(context.Context, config) error { return nil }
func history(context.Context, config) error     { return nil }
func draw(context.Context, config) error        { return nil }
