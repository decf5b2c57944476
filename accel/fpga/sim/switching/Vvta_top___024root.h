// The harness includes it beside the verilated model; there is no such class here.
#pragma once
