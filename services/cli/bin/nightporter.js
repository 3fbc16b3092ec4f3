#!/usr/bin/env node
// What is installed as a command must be there before anything is built.
import '../dist/main.js';
