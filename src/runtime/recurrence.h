// Runs the recurrence of one layer for all sessions of a pass, with the kernels that training uses. Internal
// to the runtime.
#ifndef LATTICE_RUNTIME_RECURRENCE_H_
#define LATTICE_RUNTIME_RECURRENCE_H_

#include <span>

#include "base/thread_pool.h"
#include "base/work_stealing_loop.h"
#include "runtime/layer_steps.h"
#include "runtime/pass.h"
#include "runtime/state.h"

namespace lattice::runtime {

// Advances the states of layer `steps.layer` of all segments in place.
void RunRecurrence(const LayerSteps& steps, const LayerLayout& layout, std::span<const SessionRows> segments,
                   ThreadPool& threads, WorkStealingLoop& work_loop);

}  // namespace lattice::runtime

#endif  // LATTICE_RUNTIME_RECURRENCE_H_
