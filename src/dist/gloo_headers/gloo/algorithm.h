// torch/csrc/distributed/c10d/ProcessGroupGloo.hpp includes this header of gloo's, which torch's packages do not
// carry, though libtorch_cpu holds the code. Declarations are enough: nothing of gloo's is called from here.
#pragma once
#include <gloo/context.h>
