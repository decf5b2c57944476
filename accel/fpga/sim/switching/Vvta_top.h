// What the harness takes for the verilated vta_top: its ports, and a netlist that counts behind them.
// `netlist.h` is written for each netlist: kNetlist, and its ports as lists of (type, name, bits).
#ifndef RELAY_HW_VVTA_TOP_H
#define RELAY_HW_VVTA_TOP_H

#include "netlist.h"
#include "netlist_model.h"
#include "verilated.h"
#include "verilated_vcd_c.h"

class Vvta_top {
public:
#define PORT(type, name, bits) type name = 0;
    NETLIST_INPUTS(PORT)
    NETLIST_OUTPUTS(PORT)
#undef PORT
    uint8_t clk_i = 0;
    struct Root {} root, *rootp = &root;

    Vvta_top(VerilatedContext*, const char*) : netlist_{kNetlist}, ports_{kPorts} {}

    // With the clock low everything settles; at its rising edge registers take what is there.
    void eval() {
        if (clk_i) {
            watch();
            return netlist_.clock();
        }
        const uint32_t* port = ports_;
#define PORT(type, name, bits) \
    for (int k = 0; k < bits; ++k) netlist_.set(*port++, uint64_t{name} >> k & 1);
        NETLIST_INPUTS(PORT)
#undef PORT
        netlist_.settle();
#define PORT(type, name, bits) \
    name = 0; \
    for (int k = 0; k < bits; ++k) name |= type(type(netlist_.get(*port++)) << k);
        NETLIST_OUTPUTS(PORT)
#undef PORT
    }

    void final() {}
    // The counts are what this model has in the place of waves.
    void trace(VerilatedVcdC* file, int) { file->attach(&netlist_); }

private:
    // A launch begins with the write of its register, and ends when the core says so.
    void watch() {
        if (s_axil_wvalid && s_axil_wready && s_axil_awaddr == kControl) {
            netlist_.begin();
            was_busy_ = false;
        } else if (netlist_.is_counting()) {
            if (was_busy_ && done_o) netlist_.end();
            was_busy_ |= !done_o;
        }
    }

    switching::Netlist netlist_;
    const uint32_t* ports_;
    bool was_busy_ = false;
};

#endif
