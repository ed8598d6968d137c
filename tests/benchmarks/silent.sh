#!/bin/sh
# Stands for a tool that never answers.
sleep 60
