// Operators of this library as functions of C++ that go through the dispatcher.
#ifndef LATTICE_OPS_OPERATOR_H_
#define LATTICE_OPS_OPERATOR_H_

#include <ATen/core/dispatch/Dispatcher.h>

namespace lattice {

// `name` is the full one, "lattice::_forward". Keep the result: looking it up takes a lock.
template <class Signature>
auto Operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace lattice

#endif  // LATTICE_OPS_OPERATOR_H_
