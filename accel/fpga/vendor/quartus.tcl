# Puts the accelerator into the board's reference design and compiles it:
#   quartus_sh -t project.tcl FOLDER     with a copy of Terasic's DE10_NANO_SoC_GHRD
# Without FOLDER, the accelerator is compiled alone, with virtual pins: its size and Fmax. Written for Quartus Prime
# 18.1 or later, Lite or Standard, and never run by one.
package require ::quartus::project
package require ::quartus::flow
set here [file dirname [file normalize [info script]]]
source [file join $here settings.tcl]

if {[llength $quartus(args)] == 0} {
  project_new -overwrite relay_hw
  set_global_assignment -name FAMILY "Cyclone V"
  set_global_assignment -name DEVICE $part
  set_global_assignment -name TOP_LEVEL_ENTITY relay_hw_ip
  set_global_assignment -name SEARCH_PATH [file join $here rtl]
  foreach file [lsort [glob [file join $here rtl *.v]]] {
    set_global_assignment -name VERILOG_FILE $file
  }
  set_global_assignment -name SDC_FILE [file join $here constraints.sdc]
  set_instance_assignment -name VIRTUAL_PIN ON -to *
  set_instance_assignment -name VIRTUAL_PIN OFF -to clk_i
} else {
  set ghrd [file normalize [lindex $quartus(args) 0]]
  set system [file join $ghrd soc_system.qsys]
  if {![file exists $system]} {
    error "FOLDER must hold soc_system.qsys of the reference design, not be $ghrd"
  }
  set bin [file join $quartus(quartus_rootpath) sopc_builder bin]
  cd $ghrd
  set path "$here,$"
  exec [file join $bin qsys-script] --system-file=$system --search-path=$path \
    --script=[file join $here system.tcl] >@stdout 2>@stderr
  exec [file join $bin qsys-generate] $system --synthesis=VERILOG --search-path=$path >@stdout 2>@stderr
  set project [lindex [glob [file join $ghrd *.qpf]] 0]
  project_open -current_revision [file rootname $project]
}
execute_flow -compile
project_close
