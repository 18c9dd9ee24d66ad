#!/bin/sh
# The notebook on tensor analysis: activations, gradients and weights of two trainings over the steps, side by side.
# Usage: tensor-analysis.sh GOOD BAD [OUT]
exec npx trialscan report "$1" "$2" --out "${3:-tensor-analysis.html}" --title 'Good and bad initialisation' \
  --tensor 'relu|gradient|weight|bias|_input|_output|loss'
