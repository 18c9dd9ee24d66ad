#!/bin/sh
# The autoencoder notebook: samples in the bottleneck by t-SNE, with labels, and inputs beside reconstructions, step by step.
# Usage: autoencoder.sh TRIAL BOTTLENECK [OUT]
exec npx trialscan report "$1" --embed "$2" --out "${3:-autoencoder.html}"
