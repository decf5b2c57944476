// Model of the ECP5's fixed delay of a pad for simulation, where delays of parts of a cycle do not count.
`timescale 1ns / 1ps
`default_nettype none

module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter DEL_VALUE = 0
) (
    input  wire A,
    output wire Z
);
  assign Z = A;
endmodule

`default_nettype wire
