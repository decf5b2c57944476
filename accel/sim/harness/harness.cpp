// Drives the verilated vta_top from Python through a C interface: clock, reset, AXI-Lite accesses, AXI4 memory, waves.
// One cycle: settle outputs with the clock low, take handshakes, raise the clock, drive inputs for the next edge.
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "Vvta_top.h"
#include "Vvta_top___024root.h"
#include "axi_memory.h"
#include "verilated.h"
#if VTA_TRACE_FST
#include "verilated_fst_c.h"
using Trace = VerilatedFstC;
#elif VTA_TRACE_VCD
#include "verilated_vcd_c.h"
using Trace = VerilatedVcdC;
#endif
#define VTA_TRACE (VTA_TRACE_FST || VTA_TRACE_VCD)

namespace vta {

enum Status { kRunning = 0, kDone = 1, kFailed = 2 };

constexpr uint64_t kResetCycles = 4;
constexpr uint64_t kValidEdges = 2;       // at which VALID signals may still be high in a reset: TIMING.md
constexpr uint64_t kLiteLimit = 10000;    // a register access must end within this many cycles
constexpr uint64_t kDrainLimit = 1000000;  // bursts in flight at done must end within this many

// Kept apart from Harness so that the model is destroyed before its context.
struct Model {
    VerilatedContext context;
    std::unique_ptr<Vvta_top> top;
    Model(uint64_t power_seed, std::istringstream arguments) {
        context.traceEverOn(VTA_TRACE);
        for (std::string word; arguments >> word;) {
            const char* one = word.c_str();
            context.commandArgsAdd(1, &one);
        }
        if (power_seed) {
            context.randReset(2);
            context.randSeed(static_cast<int>(power_seed));
        }
        top = std::make_unique<Vvta_top>(&context, "vta_top");
    }
};

// Verilator finds rising edges by comparing the clock with its value at the evaluation before. Where that copy has the
// name that we know, clearing it stands for a whole evaluation with the clock low.
template <class Root>
__attribute__((always_inline)) inline bool forget_clock(Root& root) {
    if constexpr (requires { root.__Vtrigprevexpr___TOP__clk_i__0 = 0; }) {
        root.__Vtrigprevexpr___TOP__clk_i__0 = 0;
        return true;
    }
    return false;
}

class Harness {
public:
    explicit Harness(const Settings& settings)
        : model_{settings.power_seed, std::istringstream{settings.arguments}}, top_{*model_.top}, settle_{VTA_TRACE || settings.settle} {
        idle_lite();
        // The first evaluation finds no edge.
        top_.clk_i = 0;
        top_.eval();
        reset(settings);
    }

    ~Harness() {
#if VTA_TRACE
        if (trace_) trace_->close();
#endif
        top_.final();
    }

    void reset() { reset(Settings{memory_->settings()}); }

    // One register access; `value` is written, or receives what was read. False when the core does not answer.
    bool access(bool write, uint32_t offset, uint32_t& value) {
        lite_ = {true, write, false, false, 0};
        if (write) memory_->restart();
        if (write) {
            top_.s_axil_awaddr = offset;
            top_.s_axil_wdata = value;
            top_.s_axil_wstrb = 15;
            top_.s_axil_awvalid = top_.s_axil_wvalid = top_.s_axil_bready = 1;
        } else {
            top_.s_axil_araddr = offset;
            top_.s_axil_arvalid = top_.s_axil_rready = 1;
        }
        for (uint64_t i = 0; i < kLiteLimit && lite_.active && !report_.failed(); ++i) step<true>();
        if (lite_.active && !report_.failed()) report_.fail(cycle_, "AXI-Lite: no response at register %#x", offset);
        idle_lite();
        if (!write) value = lite_.data;
        return !report_.failed();
    }

    // Runs until done with no burst in flight (or none that the memory would end), at most `limit` cycles.
    int run(uint64_t limit) {
        for (uint64_t i = 0; i < limit && !top_.done_o; ++i) {
            step<false>();
            if (__builtin_expect(report_.failed(), 0)) return kFailed;
        }
        if (!top_.done_o) return kRunning;
        in_flight_at_done_ = memory_->in_flight();
        for (uint64_t i = 0; memory_->in_flight() && !settings().silent; ++i) {
            if (i == kDrainLimit) report_.fail(cycle_, "AXI: %u bursts never ended", memory_->in_flight());
            if (report_.failed()) return kFailed;
            step<false>();
        }
        return kDone;
    }

    void advance(uint64_t cycles) {
        for (uint64_t i = 0; i < cycles; ++i) step<false>();
    }

    bool waves(const char* path) {
#if VTA_TRACE
        trace_ = std::make_unique<Trace>();
        top_.trace(trace_.get(), 99);
        trace_->open(path);
        return trace_->isOpen();
#else
        (void)path;
        return false;
#endif
    }

    void flush() {
#if VTA_TRACE
        if (trace_) trace_->flush();
#endif
    }

    const char* error() const { return report_.text(); }
    void clear_error() { report_.clear(); }
    uint64_t cycle() const { return cycle_; }
    uint32_t in_flight_at_done() const { return in_flight_at_done_; }
    Settings& settings() { return memory_->settings(); }
    void silence(uint32_t channels) { memory_->silence(channels); }

private:
    using Memory = AxiMemory<Vvta_top, VTA_BUS_BYTES>;

    // The memory is in the same reset: it sees none of it and has forgotten what was before.
    void reset(const Settings& settings) {
        memory_.emplace(top_, settings, report_);
        top_.rst_ni = 0;
        for (uint64_t i = 1; i <= kResetCycles; ++i) {
            step<false, false>();
            if (i >= kValidEdges && (top_.m_axi_arvalid | top_.m_axi_awvalid | top_.m_axi_wvalid))
                report_.fail(cycle_, "AXI: valid must be low in reset");
        }
        top_.rst_ni = 1;
    }

    struct Lite {
        bool active, write, address_taken, data_taken;
        uint32_t data;
    };

    template <bool WITH_LITE, bool WITH_MEMORY = true>
    __attribute__((always_inline)) inline void step() {
        // Outputs that answer inputs within the cycle exist among the registers only; the rest is settled already.
        if (WITH_LITE || settle_ || !forget_clock(*top_.rootp)) {
            top_.clk_i = 0;
            top_.eval();
            dump(0);
        }
        if (WITH_MEMORY) memory_->sample(cycle_);
        if (WITH_LITE) sample_lite();
        top_.clk_i = 1;
        top_.eval();
        dump(1);
        if (WITH_MEMORY) memory_->drive(cycle_);
        if (WITH_LITE) drive_lite();
        ++cycle_;
    }

    void sample_lite() {
        if (lite_.write) {
            lite_.address_taken |= top_.s_axil_awvalid && top_.s_axil_awready;
            lite_.data_taken |= top_.s_axil_wvalid && top_.s_axil_wready;
            if (!top_.s_axil_bvalid) return;
            if (top_.s_axil_bresp) report_.fail(cycle_, "AXI-Lite: write must be answered OKAY, not %u", top_.s_axil_bresp);
        } else {
            lite_.address_taken |= top_.s_axil_arvalid && top_.s_axil_arready;
            if (!top_.s_axil_rvalid) return;
            if (top_.s_axil_rresp) report_.fail(cycle_, "AXI-Lite: read must be answered OKAY, not %u", top_.s_axil_rresp);
            lite_.data = top_.s_axil_rdata;
        }
        lite_.active = false;
    }

    void drive_lite() {
        if (lite_.address_taken) top_.s_axil_awvalid = top_.s_axil_arvalid = 0;
        if (lite_.data_taken) top_.s_axil_wvalid = 0;
        if (!lite_.active) top_.s_axil_bready = top_.s_axil_rready = 0;
    }

    void idle_lite() {
        top_.s_axil_awvalid = top_.s_axil_wvalid = top_.s_axil_arvalid = 0;
        top_.s_axil_bready = top_.s_axil_rready = 0;
        top_.s_axil_awprot = top_.s_axil_arprot = 0;
    }

    __attribute__((always_inline)) inline void dump(unsigned half) {
#if VTA_TRACE
        if (trace_) trace_->dump(cycle_ * 2 + half);
#else
        (void)half;
#endif
    }

    Model model_;
    Vvta_top& top_;
    Report report_;
    std::optional<Memory> memory_;
    Lite lite_{};
    const bool settle_;
    uint64_t cycle_ = 0;
    uint32_t in_flight_at_done_ = 0;
#if VTA_TRACE
    std::unique_ptr<Trace> trace_;
#endif
};

}  // namespace vta

#define VTA_API extern "C" __attribute__((visibility("default")))

VTA_API uint32_t vta_settings_bytes() { return sizeof(vta::Settings); }
VTA_API vta::Harness* vta_open(const vta::Settings* settings) { return new vta::Harness(*settings); }
VTA_API void vta_close(vta::Harness* harness) { delete harness; }
VTA_API void vta_reset(vta::Harness* harness) { harness->reset(); }
VTA_API int vta_write(vta::Harness* harness, uint32_t offset, uint32_t value) {
    return harness->access(true, offset, value);
}
VTA_API int vta_read(vta::Harness* harness, uint32_t offset, uint32_t* value) {
    return harness->access(false, offset, *value);
}
VTA_API int vta_run(vta::Harness* harness, uint64_t limit) { return harness->run(limit); }
VTA_API void vta_advance(vta::Harness* harness, uint64_t cycles) { harness->advance(cycles); }
VTA_API uint64_t vta_cycle(vta::Harness* harness) { return harness->cycle(); }
VTA_API uint32_t vta_in_flight_at_done(vta::Harness* harness) { return harness->in_flight_at_done(); }
VTA_API const char* vta_error(vta::Harness* harness) { return harness->error(); }
VTA_API void vta_clear_error(vta::Harness* harness) { harness->clear_error(); }
VTA_API int vta_waves(vta::Harness* harness, const char* path) { return harness->waves(path); }
VTA_API void vta_flush(vta::Harness* harness) { harness->flush(); }
VTA_API void vta_window(vta::Harness* harness, uint8_t* window, uint64_t bytes, uint64_t base) {
    vta::Settings& settings = harness->settings();
    settings.window = window;
    settings.window_bytes = bytes;
    settings.window_base = base;
}
VTA_API void vta_inject(vta::Harness* harness, uint32_t answer, uint64_t address) {
    harness->settings().error_answer = answer;
    harness->settings().error_address = address;
}
VTA_API void vta_silence(vta::Harness* harness, uint32_t channels) { harness->silence(channels); }
