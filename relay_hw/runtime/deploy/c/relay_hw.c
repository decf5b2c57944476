#define _POSIX_C_SOURCE 200809L
#include "relay_hw.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAGIC 0x57484C52u
#define CONTAINER_BYTES 56u
/* Registers, as ISA.md lists them. */
enum { R_MAGIC = 0x00, R_VERSION = 0x04, R_HASH = 0x08, R_CONTROL = 0x0C, R_STATUS = 0x10, R_FAULT = 0x14, R_BASE = 0x18,
       R_BYTES = 0x1C, R_PROGRAM = 0x20, R_COUNT = 0x24, R_WATCHDOG = 0x28, R_CYCLES = 0x40 };
enum { LAUNCH = 1, RESET = 2, BUSY = 1, DONE = 2, FAULT = 4 };

static int fail(rhw_context *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->error, sizeof c->error, format, args);
    va_end(args);
    return -1;
}

static int lost(rhw_context *c) { return fail(c, "the accelerator must answer, not be gone"); }

/* SHA-256 (FIPS 180-4) of whole files. */

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

/* The first 32 bits behind the point of the square (n = 2) or cube (n = 3) roots of the primes. */
static void primes(uint32_t *roots, int count, int n) {
    int found = 0, p;
    for (p = 2; found < count; p++) {
        int d = 2;
        while (d * d <= p && p % d) d++;
        if (d * d > p) {
            long double low = 0, high = 32, middle = 0;
            int i;
            for (i = 0; i < 70; i++) {
                long double power;
                middle = (low + high) / 2;
                power = n == 2 ? middle * middle : middle * middle * middle;
                if (power > p) high = middle; else low = middle;
            }
            roots[found++] = (uint32_t)((middle - (long double)(int)middle) * 4294967296.0L);
        }
    }
}

static void sha_block(uint32_t *h, const uint32_t *k, const unsigned char *block) {
    uint32_t w[64], s[8];
    int i;
    for (i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (; i < 64; i++)
        w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, h, sizeof s);
    for (i = 0; i < 64; i++) {
        uint32_t a = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
        uint32_t b = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += a;
        s[0] = a + b;
    }
    for (i = 0; i < 8; i++) h[i] += s[i];
}

static void sha256(const unsigned char *data, size_t size, uint8_t *digest) {
    uint32_t h[8], k[64];
    unsigned char last[128] = {0};
    size_t whole = size / 64 * 64, rest = size - whole, end = rest < 56 ? 64 : 128, i;
    primes(h, 8, 2);
    primes(k, 64, 3);
    for (i = 0; i < whole; i += 64) sha_block(h, k, data + i);
    if (rest) memcpy(last, data + whole, rest);
    last[rest] = 0x80;
    for (i = 0; i < 8; i++) last[end - 1 - i] = (unsigned char)((uint64_t)size * 8 >> 8 * i);
    for (i = 0; i < end; i += 64) sha_block(h, k, last + i);
    for (i = 0; i < 32; i++) digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

/* A whole file in memory, its hash checked. */
static unsigned char *read_file(rhw_context *c, const char *folder, const char *name, const uint8_t *expected, size_t *size) {
    char path[4096];
    unsigned char *data = NULL;
    uint8_t digest[32];
    FILE *file;
    long end;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file) {
        fail(c, "%s must be readable: %s", path, strerror(errno));
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {
        *size = (size_t)end;
        data = malloc(*size + 1);
        if (data && fread(data, 1, *size, file) != *size) {
            free(data);
            data = NULL;
        }
    }
    fclose(file);
    if (!data) {
        fail(c, "%s must be readable and fit into memory", path);
        return NULL;
    }
    sha256(data, *size, digest);
    if (memcmp(digest, expected, sizeof digest)) {
        fail(c, "%s must be the file that the model was exported with; it is damaged or another one", path);
        free(data);
        return NULL;
    }
    return data;
}

/* The device. */

static int check_register(rhw_context *c, uint32_t reg, const char *name, uint32_t expected) {
    uint32_t found;
    if (c->device.get(c->device.self, reg, &found)) return lost(c);
    if (found != expected)
        return fail(c, "register %s of the accelerator must be 0x%08lx, not 0x%08lx", name, (unsigned long)expected, (unsigned long)found);
    return 0;
}

static int load_program(rhw_context *c, const rhw_program *p, const char *folder) {
    static const unsigned char zeros[4096];
    rhw_device *d = &c->device;
    size_t size;
    uint32_t i, at;
    unsigned char *file = read_file(c, folder, p->file, p->sha256, &size);
    int failed = 0;
    if (!file) return -1;
    for (at = 0; at < p->window_bytes && !failed; at += sizeof zeros) {
        uint32_t left = p->window_bytes - at;
        failed = d->write(d->self, p->base + at, zeros, left < sizeof zeros ? left : (uint32_t)sizeof zeros);
    }
    for (i = 0; i < p->section_count && !failed; i++) {
        const rhw_section *s = &p->sections[i];
        if (s->at != RHW_EMPTY) failed = d->write(d->self, p->base + s->offset, file + s->at, s->size);
    }
    free(file);
    return failed ? lost(c) : 0;
}

int rhw_open(rhw_context *c, const rhw_model *model, rhw_device device, const char *folder) {
    size_t size;
    uint32_t i;
    memset(c, 0, sizeof *c);
    c->model = model;
    c->device = device;
    c->weights = read_file(c, folder, model->weights_file, model->weights_sha256, &size);
    if (!c->weights) return -1;
    c->scratch = malloc(model->scratch_bytes + 1u);
    c->arena = malloc(model->arena_bytes + 1u);
    if (!c->scratch || !c->arena) return fail(c, "memory must have room for %lu bytes", (unsigned long)model->arena_bytes);
    if (!model->program_count) return 0;
    if (check_register(c, R_MAGIC, "MAGIC", MAGIC) || check_register(c, R_VERSION, "VERSION", model->isa_version)) return -1;
    if (check_register(c, R_HASH, "CONFIG_HASH", model->config_hash)) return -1;
    for (i = 0; i < model->program_count; i++)
        if (load_program(c, &model->programs[i], folder)) return -1;
    return 0;
}

void rhw_close(rhw_context *c) {
    free(c->weights), free(c->scratch), free(c->arena);
    if (c->program) c->end_program(c->program);
    c->program = c->weights = c->scratch = c->arena = NULL;
}

/* Between C.H.W or H.W.C on the host and tiles of pixels on the device: from `in`, or to `out`. */
static void move(const rhw_port *p, unsigned char *device, const int8_t *in, int8_t *out) {
    size_t lanes = p->tile_rows, block = p->tile_bytes;
    for (size_t y = 0; y < p->height; y++)
        for (size_t x = 0; x < p->width; x++)
            for (size_t k = 0; k < p->channels; k++) {
                size_t host = p->planar ? (k * p->height + y) * p->width + x : (y * p->width + x) * p->channels + k;
                size_t tile = x / lanes * lanes * p->pixel_bytes + k / block * lanes * block;
                size_t at = y * p->row_bytes + tile + x % lanes * block + k % block;
                if (in) memcpy(&device[at], &in[host], 1);
                else memcpy(&out[host], &device[at], 1);
            }
}

int rhw_store(rhw_context *c, uint32_t program, const rhw_port *p, const int8_t *tensor) {
    uint32_t size = p->height * p->row_bytes;
    move(p, memset(c->scratch, 0, size), tensor, NULL);
    return c->device.write(c->device.self, c->model->programs[program].base + p->offset, c->scratch, size) ? lost(c) : 0;
}

int rhw_load(rhw_context *c, uint32_t program, const rhw_port *p, int8_t *tensor) {
    if (c->device.read(c->device.self, c->model->programs[program].base + p->offset, c->scratch, p->height * p->row_bytes)) return lost(c);
    move(p, c->scratch, NULL, tensor);
    return 0;
}

static int run_stream(rhw_context *c, const rhw_program *p, rhw_stream stream) {
    rhw_device *d = &c->device;
    uint32_t status = BUSY, cycles = 0, index = 0;
    if (d->put(d->self, R_PROGRAM, stream.offset) || d->put(d->self, R_COUNT, stream.count) ||
        d->put(d->self, R_WATCHDOG, UINT32_MAX) || d->put(d->self, R_CONTROL, LAUNCH))
        return lost(c);
    while (!(status & (DONE | FAULT)))
        if (d->get(d->self, R_STATUS, &status)) return lost(c);
    if (d->get(d->self, R_CYCLES, &cycles) || d->get(d->self, R_FAULT, &index)) return lost(c);
    c->cycles += cycles;
    if (status & FAULT) {
        d->put(d->self, R_CONTROL, RESET);
        return fail(c, "%s must run to its end, not stop with fault %lu at instruction %lu", p->file,
                    (unsigned long)(status >> 8 & 0xFF), (unsigned long)index);
    }
    return 0;
}

int rhw_launch(rhw_context *c, uint32_t program) {
    const rhw_program *p = &c->model->programs[program];
    rhw_device *d = &c->device;
    if (c->current != p) {
        if (d->put(d->self, R_BASE, p->base) || d->put(d->self, R_BYTES, p->window_bytes)) return lost(c);
        c->current = p;
    }
    if (p->resident.count && !(c->held & p->needs)) {
        c->held &= ~p->resident_spoils;
        if (run_stream(c, p, p->resident)) return -1;
        c->held |= p->keeps;
    }
    c->held &= ~p->spoils | p->needs;
    return run_stream(c, p, p->code);
}

/* The pipe. A request is a letter and two numbers; data follows a write, and answers a read. */

typedef struct { int to, from; pid_t child; } pipe_state;

static int send_all(int file, const void *data, size_t size) {
    const char *at = data;
    while (size) {
        ssize_t sent = write(file, at, size);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return -1;
        at += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static int receive_all(int file, void *data, size_t size) {
    char *at = data;
    while (size) {
        ssize_t got = read(file, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

static int request(void *self, char letter, uint32_t a, uint32_t b) {
    unsigned char message[9] = {(unsigned char)letter};
    int i;
    for (i = 0; i < 4; i++) {
        message[1 + i] = (unsigned char)(a >> 8 * i);
        message[5 + i] = (unsigned char)(b >> 8 * i);
    }
    return send_all(((pipe_state *)self)->to, message, sizeof message);
}

static int pipe_write(void *self, uint32_t address, const void *data, uint32_t size) {
    return request(self, 'w', address, size) || send_all(((pipe_state *)self)->to, data, size) ? -1 : 0;
}

static int pipe_read(void *self, uint32_t address, void *data, uint32_t size) {
    return request(self, 'r', address, size) || receive_all(((pipe_state *)self)->from, data, size) ? -1 : 0;
}

static int pipe_put(void *self, uint32_t reg, uint32_t value) { return request(self, 'p', reg, value); }

static int pipe_get(void *self, uint32_t reg, uint32_t *value) {
    unsigned char b[4];
    if (request(self, 'g', reg, 0) || receive_all(((pipe_state *)self)->from, b, sizeof b)) return -1;
    *value = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return 0;
}

int rhw_pipe_open(rhw_device *device, const char *command) {
    pipe_state *state = malloc(sizeof *state);
    int down[2], up[2];
    if (!state || pipe(down) || pipe(up)) return -1;
    signal(SIGPIPE, SIG_IGN);
    state->child = fork();
    if (state->child < 0) return -1;
    if (state->child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[0]), close(down[1]), close(up[0]), close(up[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    state->to = down[1];
    state->from = up[0];
    *device = (rhw_device){state, pipe_write, pipe_read, pipe_put, pipe_get};
    return 0;
}

void rhw_pipe_close(rhw_device *device) {
    pipe_state *state = device->self;
    close(state->to);
    close(state->from);
    waitpid(state->child, NULL, 0);
    free(state);
}

/* Operators. */

int rhw_check_finite(rhw_context *c, const char *what, const void *data, size_t bytes, size_t rank, const size_t *shape) {
    /* All bits of the exponent are set in NaN and infinity alone; half, single and double precision. */
    const uint64_t exponent = bytes == 2 ? 0x7C00u : bytes == 4 ? 0x7F800000u : UINT64_C(0x7FF) << 52, sign = UINT64_C(1) << (8 * bytes - 1);
    size_t count = 1, i, k, used = 0;
    char index[128] = "";
    for (k = 0; k < rank; k++) count *= shape[k];
    for (i = 0; i < count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)data + i * bytes, bytes);
        if ((bits & exponent) != exponent) continue;
        for (k = 0; k < rank && used < sizeof index; i %= count, k++)
            used += (size_t)snprintf(index + used, sizeof index - used, k ? ", %zu" : "%zu", i / (count /= shape[k]));
        return fail(c, "%s must hold finite numbers, not %s (index %s%s%s)", what, (bits & ~sign) != exponent ? "NaN" : bits & sign ? "-infinity"
                    : "infinity", rank == 1 ? "" : "(", index, rank == 1 ? "" : ")");
    }
    return 0;
}

static int64_t quantized(float x, const rhw_quant *q, size_t i) {
    size_t k = i / q->inner % q->channels;
    float quotient = x / q->scale[k], whole;
    double bound = 2.0 * ((double)q->high - q->low), value;
    int64_t shifted;
    if (q->half_even) {
        whole = rintf(quotient);
    } else {
        whole = truncf(quotient);
        if (fabsf(quotient - whole) >= 0.5f) whole += quotient > 0 ? 1.0f : -1.0f;
    }
    value = isnan(whole) ? 0.0 : whole;
    value = value < -bound ? -bound : value > bound ? bound : value;
    shifted = (int64_t)value + q->zero[k];
    return shifted < q->low ? q->low : shifted > q->high ? q->high : shifted;
}

#define QUANTIZE(T, NAME)                                                                 \
    void rhw_quantize_##NAME(const float *x, T *y, const rhw_quant *q) {                  \
        size_t i;                                                                         \
        for (i = 0; i < q->size; i++) y[i] = (T)quantized(x[i], q, i);                    \
    }
QUANTIZE(int8_t, int8)
QUANTIZE(uint8_t, uint8)

#define DEQUANTIZE(T, NAME)                                                               \
    void rhw_dequantize_##NAME(const T *x, float *y, const rhw_quant *q) {                \
        size_t i;                                                                         \
        for (i = 0; i < q->size; i++) {                                                   \
            size_t k = i / q->inner % q->channels;                                        \
            y[i] = (float)((int64_t)x[i] - q->zero[k]) * q->scale[k];                     \
        }                                                                                 \
    }
DEQUANTIZE(int8_t, int8)
DEQUANTIZE(uint8_t, uint8)
DEQUANTIZE(int32_t, int32)

void rhw_softmax(const float *x, float *y, size_t outer, size_t count, size_t inner, int logarithm) {
    size_t o, i, k;
    for (o = 0; o < outer; o++)
        for (i = 0; i < inner; i++) {
            size_t at = o * count * inner + i;
            double top = x[at], sum = 0;
            for (k = 1; k < count; k++) top = x[at + k * inner] > top ? x[at + k * inner] : top;
            for (k = 0; k < count; k++) sum += exp(x[at + k * inner] - top);
            for (k = 0; k < count; k++) {
                double shifted = x[at + k * inner] - top;
                y[at + k * inner] = (float)(logarithm ? shifted - log(sum) : exp(shifted) / sum);
            }
        }
}

void rhw_transpose(const void *x, void *y, size_t rank, const size_t *shape, const size_t *axes, size_t bytes) {
    size_t strides[8], index[8] = {0}, i, k, total = 1, at = 0;
    for (k = rank; k-- > 0;) {
        strides[k] = total;
        total *= shape[k];
    }
    for (i = 0; i < total; i++) {
        memcpy((char *)y + i * bytes, (const char *)x + at * bytes, bytes);
        for (k = rank; k-- > 0;) {
            at += strides[axes[k]];
            if (++index[k] < shape[axes[k]]) break;
            at -= strides[axes[k]] * index[k];
            index[k] = 0;
        }
    }
}
