// What the harness needs of Verilator's run time, where no verilated model is behind it.
#ifndef RELAY_HW_VERILATED_H
#define RELAY_HW_VERILATED_H

#include <algorithm>
#include <cstdint>
#include <memory>

struct VerilatedContext {
    void traceEverOn(bool) {}
};

#endif
