// Model of a single-data-rate SDRAM for simulation: keeps what is written, and ends the simulation with a sentence at
// the first command that breaks a rule of the data sheet: times between commands, rows and banks that are not open,
// the order of initialisation, refresh that comes too late, two drivers of the data pins.
// Contract: bursts of one word; commands count at rising edges of clk_i; data of READ can be taken CAS_LATENCY edges
// later; an auto-precharge begins as soon as tRAS and tWR allow.
`timescale 1ns / 1ps
`default_nettype none

module sdram_chip #(
    parameter DATA_BITS = 16,
    parameter ROW_BITS = 13,
    parameter COLUMN_BITS = 9,
    // Latency that the mode register must ask for
    parameter CAS_LATENCY = 2,
    // Least cycles between commands
    parameter T_RCD = 2,
    parameter T_RP = 2,
    parameter T_RAS = 4,
    parameter T_RC = 6,
    parameter T_RFC = 6,
    parameter T_RRD = 2,
    parameter T_WR = 2,
    parameter T_MRD = 2,
    // Cycles for which one refresh lasts; the controller may be late by so many
    parameter T_REFI = 625,
    parameter REFRESH_LATE = 9,
    // Cycles after power-up before the first command
    parameter T_POWER_UP = 8000
) (
    input wire clk_i,
    input wire cke_i,
    input wire cs_ni,
    input wire ras_ni,
    input wire cas_ni,
    input wire we_ni,
    input wire [1:0] bank_i,
    input wire [ROW_BITS-1:0] address_i,
    input wire [DATA_BITS/8-1:0] mask_i,
    inout wire [DATA_BITS-1:0] data_io
);
  localparam WORD_BITS = 2 + ROW_BITS + COLUMN_BITS;
  localparam [2:0] MODE = 3'b000, REFRESH = 3'b001, PRECHARGE = 3'b010, ACTIVATE = 3'b011;
  localparam [2:0] WRITE = 3'b100, READ = 3'b101, STOP = 3'b110, NOTHING = 3'b111;

  reg [DATA_BITS-1:0] memory[0:(1<<WORD_BITS)-1];

  // state of the banks; times count cycles since power-up, and start long ago
  reg [63:0] now, refreshed, activated, moded, reading, opened[0:3], closed[0:3], written[0:3];
  reg [3:0] open;
  reg [ROW_BITS-1:0] row[0:3];
  reg awake, precharged, ready, holding;
  reg [7:0] refreshes;
  reg [63:0] due, done;
  reg broken;

  // what leaves the chip
  reg [DATA_BITS-1:0] first_q, out_q;
  reg first_valid_q, out_valid_q;
  reg [DATA_BITS/8-1:0] mask_q, out_mask_q;
  reg [DATA_BITS-1:0] second_q;
  reg second_valid_q;

  wire [2:0] command = cs_ni ? NOTHING : {ras_ni, cas_ni, we_ni};
  wire is_read = cke_i && command == READ;
  wire [WORD_BITS-1:0] place = {row[bank_i], bank_i, address_i[COLUMN_BITS-1:0]};
  wire [DATA_BITS-1:0] word = memory[place];

  genvar lane;
  generate
    for (lane = 0; lane < DATA_BITS / 8; lane = lane + 1) begin : g_lane
      assign data_io[8*lane+:8] = out_valid_q && !out_mask_q[lane] ? out_q[8*lane+:8] : 8'bz;
    end
  endgenerate

  integer k;
  initial begin
    now = 64'd1 << 32;
    refreshed = 64'd0;
    activated = 64'd0;
    moded = 64'd0;
    reading = 64'd0;
    for (k = 0; k < 4; k = k + 1) begin
      opened[k] = 64'd0;
      closed[k] = 64'd0;
      written[k] = 64'd0;
    end
    open = 4'd0;
    {awake, precharged, ready, holding, broken} = 5'd0;
    refreshes = 8'd0;
    due = 64'd0;
    done = 64'd0;
    {first_valid_q, second_valid_q, out_valid_q} = 3'd0;
    mask_q = {(DATA_BITS / 8) {1'b0}};
    out_mask_q = {(DATA_BITS / 8) {1'b0}};
  end

  task refuse(input [8*40-1:0] rule, input [63:0] least, input [63:0] found);
    if (!broken) begin
      broken = 1'b1;
      $fdisplay(32'h8000_0002, "sdram: %0s must be at least %0d cycles, not %0d (bank %0d, cycle %0d)", rule, least,
                found, bank_i, now - (64'd1 << 32));
      $finish;
    end
  endtask

  task forbid(input [8*80-1:0] what);
    if (!broken) begin
      broken = 1'b1;
      $fdisplay(32'h8000_0002, "sdram: %0s (bank %0d, cycle %0d)", what, bank_i, now - (64'd1 << 32));
      $finish;
    end
  endtask

  task at_least(input [8*40-1:0] rule, input [63:0] least, input [63:0] since);
    if (now < since + least) refuse(rule, least, now > since ? now - since : 64'd0);
  endtask

  task close(input [1:0] which, input [63:0] moment);
    if (open[which]) begin
      open[which]   = 1'b0;
      closed[which] = moment;
    end
  endtask

  task precharge(input [1:0] which);
    if (open[which]) begin
      at_least("tRAS", T_RAS, opened[which]);
      at_least("tWR", T_WR, written[which]);
      close(which, now);
    end
  endtask

  // an auto-precharge waits for tRAS
  task finish_access;
    if (address_i[10])
      if (command == WRITE)
        close(bank_i, now + T_WR > opened[bank_i] + T_RAS ? now + T_WR : opened[bank_i] + T_RAS);
      else close(bank_i, now + 1 > opened[bank_i] + T_RAS ? now + 1 : opened[bank_i] + T_RAS);
  endtask

  task access;
    if (!ready) forbid("an access must come after the initialisation");
    else if (!open[bank_i]) forbid("an access must find its bank open");
    else at_least("tRCD", T_RCD, opened[bank_i]);
  endtask

  always @(posedge clk_i) begin
    now = now + 64'd1;
    if (awake && precharged && !cke_i) forbid("clock enable must stay high");
    awake = cke_i;
    if (cke_i && command != NOTHING) begin
      if (now - (64'd1 << 32) < T_POWER_UP) refuse("time from power-up to the first command", T_POWER_UP,
                                                   now - (64'd1 << 32));
      at_least("tMRD", T_MRD, moded);
      at_least("tRFC", T_RFC, refreshed);
    end
    if (cke_i)
      case (command)
        MODE: begin
          if (open != 4'd0) forbid("the mode register must be written with all banks closed");
          for (k = 0; k < 4; k = k + 1) at_least("tRP", T_RP, closed[k]);
          if (address_i[ROW_BITS-1:0] != CAS_LATENCY << 4) forbid("the mode must be bursts of one and the latency");
          if (!precharged || refreshes < 8'd2) forbid("the mode register must come after precharge and two refreshes");
          ready = 1'b1;
          moded = now;
        end
        REFRESH: begin
          if (open != 4'd0) forbid("a refresh must find all banks closed");
          if (!precharged) forbid("a refresh must come after a precharge of all banks");
          for (k = 0; k < 4; k = k + 1) at_least("tRP", T_RP, closed[k]);
          if (refreshes != 8'hff) refreshes = refreshes + 8'd1;
          if (done < due + REFRESH_LATE) done = done + 64'd1;
          refreshed = now;
        end
        PRECHARGE:
        if (address_i[10]) begin
          for (k = 0; k < 4; k = k + 1) precharge(k[1:0]);
          if (!precharged) for (k = 0; k < 4; k = k + 1) closed[k] = now;
          precharged = 1'b1;
        end else precharge(bank_i);
        ACTIVATE: begin
          if (!ready) forbid("a row must be opened after the initialisation");
          if (open[bank_i]) forbid("a row must be opened in a closed bank");
          at_least("tRP", T_RP, closed[bank_i]);
          at_least("tRC", T_RC, opened[bank_i]);
          at_least("tRRD", T_RRD, activated);
          open[bank_i]   = 1'b1;
          row[bank_i]    = address_i;
          opened[bank_i] = now;
          activated      = now;
        end
        WRITE: begin
          access;
          if (now - reading <= CAS_LATENCY) forbid("a write must wait until the data of a read have left");
          for (k = 0; k < DATA_BITS / 8; k = k + 1) if (!mask_i[k]) memory[place][8*k+:8] = data_io[8*k+:8];
          written[bank_i] = now;
          if (!holding) done = due;
          holding = 1'b1;
          finish_access;
        end
        READ: begin
          access;
          reading = now;
          finish_access;
        end
        STOP: forbid("bursts of one word must not be stopped");
        default: ;
      endcase
    // what was written must be refreshed
    if (holding && now % T_REFI == 64'd0) begin
      due = due + 64'd1;
      if (due > done + REFRESH_LATE) forbid("refresh must come in time");
    end
  end

  // data leave after CAS_LATENCY - 1 edges, masked by the mask of two edges before they are taken
  always @(posedge clk_i) begin
    first_q        <= word;
    first_valid_q  <= is_read;
    second_q       <= first_q;
    second_valid_q <= first_valid_q;
    mask_q         <= mask_i;
    out_q          <= CAS_LATENCY == 3 ? second_q : first_q;
    out_valid_q    <= CAS_LATENCY == 3 ? second_valid_q : first_valid_q;
    out_mask_q     <= mask_q;
  end
endmodule

`default_nettype wire
