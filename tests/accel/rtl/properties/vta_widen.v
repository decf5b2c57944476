// induction 1 BEAT_W=16 WGT_BITS=8 FACTORS=1
// induction 1 BEAT_W=16 WGT_BITS=8 FACTORS=2
// induction 1 BEAT_W=16 WGT_BITS=4 FACTORS=4

  // A weight of the solver's choice.
  localparam F_WEIGHTS = BEAT_W / HALF;
  (* anyconst *) reg [7:0] f_at;
  always @* assume (f_at < F_WEIGHTS);
  wire [HALF-1:0] f_weight = beat_i[f_at*HALF+:HALF];
  wire [3:0] f_factor = factor_i[(f_at/SHARE)*4+:4];
  wire signed [15:0] f_product = $signed({{(16 - HALF) {f_weight[HALF-1]}}, f_weight}) * $signed({12'd0, f_factor} + 16'd1);
  // P1 Every weight comes out in its place, widened with its sign, times the factor of its group plus one, low bits kept.
  always @* p1: assert (wide_o[f_at*WGT_BITS+:WGT_BITS] == f_product[WGT_BITS-1:0]);
