fetch("v1/models")
  .then((answer) => answer.json())
  .then((models) => {
    document.getElementById("model").textContent = `This server has the model ${models.data[0].id}.`;
  });
