# For qsys-script: adds the accelerator with a clock of its own to the reference design's soc_system.
package require qsys
source [file join [file dirname [file normalize [info script]]] settings.tcl]

add_instance relay_hw_pll altera_pll
set_instance_parameter_value relay_hw_pll gui_reference_clock_frequency 50.0
set_instance_parameter_value relay_hw_pll gui_number_of_clocks 1
set_instance_parameter_value relay_hw_pll gui_output_clock_frequency0 $mhz
set_instance_parameter_value relay_hw_pll gui_use_locked 0
add_connection clk_0.clk relay_hw_pll.refclk
add_connection clk_0.clk_reset relay_hw_pll.reset

add_instance relay_hw relay_hw_ip
add_connection relay_hw_pll.outclk0 relay_hw.clock
add_connection clk_0.clk_reset relay_hw.reset
add_connection hps_0.h2f_lw_axi_master relay_hw.s_axil
# The processor sees its lightweight bridge from this address on.
set offset [format 0x%08x [expr {$registers - 0xFF200000}]]
set_connection_parameter_value hps_0.h2f_lw_axi_master/relay_hw.s_axil baseAddress $offset
add_connection relay_hw.m_axi hps_0.f2h_axi_slave
set_connection_parameter_value relay_hw.m_axi/hps_0.f2h_axi_slave baseAddress 0x0000
save_system
