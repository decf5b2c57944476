"""Native code for programs with control flow: flat functions become C, which the system's compiler makes machine code.

The steps, a file each: `lower.py` (flat functions to statements over locals, with `operators.py` for calls on tensors),
`calls.py` (which tail calls need care), `ownership.py` (when objects are freed), `c_code.py` and `c_loops.py` (C text),
`library.py` (compiled, loaded, run); `c/` is the runtime that the C text includes. `show.py` prints the lowered form.
The interpreter is the reference semantics.

- **Values.** A tensor of rank 0 of a type that C has is a C number in locals, parameters and results. Everything else
  is an object with a counter: a tensor (element type, sizes, elements), a tuple, a value of a data type (a tag), a
  function (a number and what it captures), a reference. Fields hold objects, so that one function serves all types of
  a polymorphic one: a number becomes a tensor where it enters a field, and a number again where its type is known.
- **Functions.** A branch or an arm is a block of the function around it. A closure's body is a function whose first
  parameters are what it captures; calls of a known closure pass these on and make no object. A call of a function that
  is a value goes by its number.
- **Memory.** Every object is freed after its last use, by counters that `ownership.py` places; small ones come from
  lists by size. Cycles, which only references can make, end with the call, as all memory does. A loop of any number of
  steps runs in the memory of one.
- **Calls.** A function that calls itself last is a loop. Other tail calls within a cycle of calls are postponed: the
  caller makes them. Recursion that is not at the end goes on on a new stack where one is full, and ends with EvalError
  where the interpreter would end it. A failure (no arm, division by zero, no memory) leaves the call by longjmp.
- **Tensors.** Elementwise operators of known shape are expressions, computed in one loop where the result is needed;
  operators that move elements change strides; products and sums are loops with an order of additions that depends on
  sizes only, and exp and tanh are the runtime's own in float32, so that floats are the same on every machine. Integers
  are the interpreter's. Any other operator, shape or element type is a callback to the reference semantics.
"""

from relay_hw.backend.native.library import NativeModule, compile_native, find_compiler

__all__ = ["NativeModule", "compile_native", "find_compiler"]
