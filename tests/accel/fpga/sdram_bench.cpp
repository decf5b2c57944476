// Drives the model of an SDRAM chip: each line of standard input is the pins of one clock cycle, each line of standard
// output the data on the bus before the edge.  Ends with status 3 where the chip refused a command.
// Line: clock enable, command (row, column, write strobe as a number, 7 is none), bank, address, mask, drive, data.
#include <cstdio>

#include "Vbench.h"
#include "verilated.h"

int main() {
    VerilatedContext context;
    Vbench top{&context};
    unsigned enable, command, bank, address, mask, drive, data;
    top.clk_i = 0;
    top.eval();
    while (std::scanf("%u %u %u %u %u %u %u", &enable, &command, &bank, &address, &mask, &drive, &data) == 7) {
        top.cke_i = enable;
        top.command_i = command;
        top.bank_i = bank;
        top.address_i = address;
        top.mask_i = mask;
        top.drive_i = drive;
        top.data_i = data;
        top.eval();
        std::printf("%u\n", unsigned(top.data_o));
        top.clk_i = 1;
        top.eval();
        if (context.gotFinish()) return 3;
        top.clk_i = 0;
        top.eval();
    }
    return 0;
}
