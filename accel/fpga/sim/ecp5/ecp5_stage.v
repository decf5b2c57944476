// Register between the parts of a multiplier model, or none where CLK is "NONE"; reset is synchronous.
`timescale 1ns / 1ps
`default_nettype none

module ecp5_stage #(
    parameter WIDTH = 18,
    parameter CLK = "NONE",
    parameter CE = "CE0",
    parameter RST = "RST0"
) (
    input  wire [      3:0] clk_i,
    input  wire [      3:0] ce_i,
    input  wire [      3:0] rst_i,
    input  wire [WIDTH-1:0] data_i,
    output wire [WIDTH-1:0] data_o
);
  localparam C = CLK == "CLK3" ? 3 : CLK == "CLK2" ? 2 : CLK == "CLK1" ? 1 : 0;
  localparam E = CE == "CE3" ? 3 : CE == "CE2" ? 2 : CE == "CE1" ? 1 : 0;
  localparam R = RST == "RST3" ? 3 : RST == "RST2" ? 2 : RST == "RST1" ? 1 : 0;

  generate
    if (CLK == "NONE") begin : g_none
      assign data_o = data_i;
    end else begin : g_register
      reg [WIDTH-1:0] data_q;
      initial data_q = {WIDTH{1'b0}};
      always @(posedge clk_i[C])
        if (rst_i[R]) data_q <= {WIDTH{1'b0}};
        else if (ce_i[E]) data_q <= data_i;
      assign data_o = data_q;
    end
  endgenerate
endmodule

`default_nettype wire
