// What yosys makes a signed product of up to 12 by 12 bits of, on Gowin's Arora V: it knows no multiplier there.
module \$__MUL12X12 (
    input  [11:0] A,
    input  [11:0] B,
    output [23:0] Y
);
  parameter A_SIGNED = 1;
  parameter B_SIGNED = 1;
  parameter A_WIDTH = 12;
  parameter B_WIDTH = 12;
  parameter Y_WIDTH = 24;
  MULT12X12 _TECHMAP_REPLACE_ (
      .A(A),
      .B(B),
      .DOUT(Y),
      .CLK(2'd0),
      .CE(2'd0),
      .RESET(2'd0)
  );
endmodule
