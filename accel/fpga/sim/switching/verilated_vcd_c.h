// In the place of waves: the file gets the counts of the last launch whenever it is flushed.
#ifndef RELAY_HW_VERILATED_VCD_C_H
#define RELAY_HW_VERILATED_VCD_C_H

#include <string>

#include "netlist_model.h"

class VerilatedVcdC {
public:
    void attach(const switching::Netlist* netlist) { netlist_ = netlist; }
    void open(const char* path) {
        path_ = path;
        is_open_ = netlist_->save(path);
    }
    bool isOpen() const { return is_open_; }
    void dump(uint64_t) {}
    void flush() { is_open_ = is_open_ && netlist_->save(path_.c_str()); }
    void close() {}

private:
    const switching::Netlist* netlist_ = nullptr;
    std::string path_;
    bool is_open_ = false;
};

#endif
