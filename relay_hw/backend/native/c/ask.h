// Calls that the caller of a compiled program answers by a function of its own.
#ifndef RHW_ASK_H
#define RHW_ASK_H

#include "stream.h"

/* The answer of the caller to call `number` of the program, which looks at its arguments. */
static RHW_NOINLINE rhw_value *rhw_ask(rhw_run *r, int32_t number, rhw_value **args, uint32_t count) {
    uint32_t k;
    r->stream_words = 0;
    for (k = 0; k < count; k++) rhw_encode(r, args[k]);
    if (r->answer(r->self, number)) rhw_fail(r, r->error);
    if (rhw_decode(r) != 1) rhw_fail(r, "an answer must be one value");
    return r->stack[0];
}

#endif
