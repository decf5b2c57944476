// Runs a compiled model without Python: programs on the accelerator, operators at its border on the host.
//
// Everything returns 0, or -1 with a sentence in `error`. After rhw_open only control flow allocates.
#ifndef RELAY_HW_H
#define RELAY_HW_H

#include <stddef.h>
#include <stdint.h>

/* How to reach an accelerator: memory on its bus, and its registers. Each function returns 0, or -1 if it failed. */
typedef struct {
    void *self;
    int (*write)(void *self, uint32_t address, const void *data, uint32_t size);
    int (*read)(void *self, uint32_t address, void *data, uint32_t size);
    int (*put)(void *self, uint32_t reg, uint32_t value);
    int (*get)(void *self, uint32_t reg, uint32_t *value);
} rhw_device;

/* Bytes of a window; `at`: where they lie in the program file, or RHW_EMPTY for room without content. */
typedef struct { uint32_t offset, size, at; } rhw_section;
#define RHW_EMPTY UINT32_MAX

/* Instructions in a window. */
typedef struct { uint32_t offset, count; } rhw_stream;

/* A program in a window of its own at bus address `base`. `resident`: instructions that make constants stay on the
 * device, count 0 for none; `needs`: the bit of these constants, `keeps`: also of others' that are among them;
 * `spoils`: bits of those that the program overwrites; `resident_spoils`: that its resident stream overwrites. */
typedef struct {
    const char *file;
    uint8_t sha256[32];
    uint32_t base, window_bytes;
    const rhw_section *sections;
    uint32_t section_count;
    rhw_stream code, resident;
    uint64_t needs, keeps, spoils, resident_spoils;
} rhw_program;

/* An activation at the border of a program: bytes N.H.W.C with room behind pixels or rows. `planar`: the host has C.H.W.
   Rows are cut into tiles of `tile_rows` pixels, 1 in most, and `tile_bytes` channels, those of the same pixels first. */
typedef struct { uint32_t offset, height, width, channels, pixel_bytes, row_bytes, tile_rows, tile_bytes; int planar; } rhw_port;

/* A model: what the generated code knows, and memory for it. */
typedef struct {
    uint32_t isa_version, config_hash;
    const rhw_program *programs;
    uint32_t program_count;
    const char *weights_file;
    uint8_t weights_sha256[32];
    uint32_t scratch_bytes, arena_bytes; /* the largest activation at a border; all tensors of the host */
} rhw_model;

typedef struct {
    const rhw_model *model;
    rhw_device device;
    unsigned char *weights, *scratch, *arena;
    const rhw_program *current;
    void *program, (*end_program)(void *program); /* with control flow: what runs share, and how that ends */
    uint64_t held, cycles; /* resident constants on the device; cycles of all launches, 0 where time has no meaning */
    char error[256];
} rhw_context;

/* Reads and checks the files of `folder`, checks that the device is the right one, and fills its memory. */
int rhw_open(rhw_context *c, const rhw_model *model, rhw_device device, const char *folder);
void rhw_close(rhw_context *c);

int rhw_store(rhw_context *c, uint32_t program, const rhw_port *port, const int8_t *tensor);
int rhw_launch(rhw_context *c, uint32_t program);
int rhw_load(rhw_context *c, uint32_t program, const rhw_port *port, int8_t *tensor);

/* An accelerator behind a pipe: `command` runs in a shell and speaks the protocol of accel/sim/pipe.py. */
int rhw_pipe_open(rhw_device *device, const char *command);
void rhw_pipe_close(rhw_device *device);

/* Refuses NaN and infinity: floats of `bytes` bytes each, under the name `what`. */
int rhw_check_finite(rhw_context *c, const char *what, const void *data, size_t bytes, size_t rank, const size_t *shape);

/* Operators. `channels` scales and zero points, each for `inner` elements in turn. */
typedef struct { size_t size, channels, inner; const float *scale; const int32_t *zero; int32_t low, high; int half_even; } rhw_quant;
void rhw_quantize_int8(const float *x, int8_t *y, const rhw_quant *q);
void rhw_quantize_uint8(const float *x, uint8_t *y, const rhw_quant *q);
void rhw_dequantize_int8(const int8_t *x, float *y, const rhw_quant *q);
void rhw_dequantize_uint8(const uint8_t *x, float *y, const rhw_quant *q);
void rhw_dequantize_int32(const int32_t *x, float *y, const rhw_quant *q);
void rhw_softmax(const float *x, float *y, size_t outer, size_t count, size_t inner, int logarithm);
void rhw_transpose(const void *x, void *y, size_t rank, const size_t *shape, const size_t *axes, size_t bytes);

#endif
