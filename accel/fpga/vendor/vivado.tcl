# A block design of processor and accelerator, and its bitstream: vivado -mode batch -source project.tcl
# Leaves relay_hw.bit and relay_hw.hwh beside this file. Written for Vivado 2020.2 or later, and never run by one.
set here [file dirname [file normalize [info script]]]
source [file join $here settings.tcl]

create_project -force relay_hw [file join $here project] -part $part
# The board's own description, where it is installed, sets up the processor's memory and clocks.
set boards [get_board_parts -quiet -latest_file_version "*:$board_part:*"]
set preset [expr {[llength $boards] > 0}]
if {$preset} {
  set_property board_part [lindex $boards 0] [current_project]
}
add_files -norecurse [glob [file join $here rtl *.v] [file join $here rtl *.vh]]
add_files -norecurse -fileset constrs_1 [file join $here constraints.xdc]
set_property include_dirs [file join $here rtl] [current_fileset]
update_compile_order -fileset sources_1

create_bd_design system
if {$family eq "xc7"} {
  create_bd_cell -type ip -vlnv xilinx.com:ip:processing_system7 ps
  apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 \
    -config [list make_external "FIXED_IO, DDR" apply_board_preset $preset] [get_bd_cells ps]
  set_property -dict [list \
    CONFIG.PCW_USE_M_AXI_GP0 1 \
    CONFIG.PCW_USE_S_AXI_HP0 1 \
    CONFIG.PCW_S_AXI_HP0_DATA_WIDTH 64 \
    CONFIG.PCW_EN_CLK0_PORT 1 \
    CONFIG.PCW_EN_RST0_PORT 1 \
    CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ $mhz] [get_bd_cells ps]
  set clock ps/FCLK_CLK0
  set reset ps/FCLK_RESET0_N
  set clocked {ps/M_AXI_GP0_ACLK ps/S_AXI_HP0_ACLK}
  set master ps/M_AXI_GP0
  set slave ps/S_AXI_HP0
  set segment ps/S_AXI_HP0/HP0_DDR_LOWOCM
} else {
  create_bd_cell -type ip -vlnv xilinx.com:ip:zynq_ultra_ps_e ps
  apply_bd_automation -rule xilinx.com:bd_rule:zynq_ultra_ps_e \
    -config [list apply_board_preset $preset] [get_bd_cells ps]
  set_property -dict [list \
    CONFIG.PSU__USE__M_AXI_GP0 1 \
    CONFIG.PSU__USE__M_AXI_GP1 0 \
    CONFIG.PSU__USE__M_AXI_GP2 0 \
    CONFIG.PSU__USE__S_AXI_GP2 1 \
    CONFIG.PSU__SAXIGP2__DATA_WIDTH 64 \
    CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ $mhz] [get_bd_cells ps]
  set clock ps/pl_clk0
  set reset ps/pl_resetn0
  set clocked {ps/maxihpm0_fpd_aclk ps/saxihp0_fpd_aclk}
  set master ps/M_AXI_HPM0_FPD
  set slave ps/S_AXI_HP0_FPD
  set segment ps/SAXIGP2/HP0_DDR_LOW
}
create_bd_cell -type module -reference relay_hw_ip accel
create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset reset
foreach name {to_registers to_memory} {
  create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect $name
  set_property -dict [list CONFIG.NUM_SI 1 CONFIG.NUM_MI 1] [get_bd_cells $name]
}

foreach pin [concat $clocked {accel/clk_i reset/slowest_sync_clk to_registers/aclk to_memory/aclk}] {
  connect_bd_net [get_bd_pins $clock] [get_bd_pins $pin]
}
connect_bd_net [get_bd_pins $reset] [get_bd_pins reset/ext_reset_in]
foreach pin {accel/rst_ni to_registers/aresetn to_memory/aresetn} {
  connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins $pin]
}
foreach {from to} [list $master to_registers/S00_AXI to_registers/M00_AXI accel/s_axil \
                     accel/m_axi to_memory/S00_AXI to_memory/M00_AXI $slave] {
  connect_bd_intf_net [get_bd_intf_pins $from] [get_bd_intf_pins $to]
}
if {$done_pin ne ""} {
  create_bd_port -dir O done
  connect_bd_net [get_bd_pins accel/done_o] [get_bd_ports done]
}
assign_bd_address -offset $registers -range 4K \
  -target_address_space [get_bd_addr_spaces ps/Data] [get_bd_addr_segs accel/s_axil/reg0]
assign_bd_address -target_address_space [get_bd_addr_spaces accel/m_axi] [get_bd_addr_segs $segment]
validate_bd_design
save_bd_design

make_wrapper -files [get_files system.bd] -top -import
set_property top system_wrapper [current_fileset]
update_compile_order -fileset sources_1
launch_runs impl_1 -to_step write_bitstream -jobs 4
wait_on_run impl_1
if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {
  error "implementation must end well, not with: [get_property STATUS [get_runs impl_1]]"
}
open_run impl_1
report_utilization -hierarchical -file [file join $here utilization.txt]
report_timing_summary -file [file join $here timing.txt]
set made [file join $here project relay_hw.runs impl_1 system_wrapper.bit]
file copy -force $made [file join $here relay_hw.bit]
foreach file [glob [file join $here project relay_hw.* sources_1 bd system hw_handoff system.hwh]] {
  file copy -force $file [file join $here relay_hw.hwh]
}
