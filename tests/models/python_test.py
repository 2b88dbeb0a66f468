"""python_test.py EXAMPLES FOLDER save|compare: for python_test.sh."""
import sys

import torch

sys.path.insert(0, sys.argv[1])
folder = sys.argv[2]
from amoebanet import AmoebaNet  # noqa: E402
from resnet import ResNet  # noqa: E402
from weights import read_weights  # noqa: E402


def models():
    """Of each file of weights."""
    return {"resnet_v1.pt": ResNet(1, 8), "resnet_v2.safetensors": ResNet(2, 11, (40, 40)),
            "amoebanet.pt": AmoebaNet(3, 16), "python.pt": ResNet(2, 11)}


def save():
    torch.manual_seed(1)
    model = models()["python.pt"]
    model.train()
    model(torch.rand(4, 3, 32, 32))  # statistics that are not those of the start
    torch.save(model.state_dict(), f"{folder}/python.pt")


def compare():
    for file, model in models().items():
        model.load_state_dict(read_weights(f"{folder}/{file}"))
        model.eval()
        answer = read_weights(f"{folder}/{file.split('.')[0]}.logits.safetensors")
        with torch.no_grad():
            expected = model(answer["images"].contiguous())
        apart = (answer["logits"] - expected).abs().max().item()
        print(f"{file}: {apart:.2e} apart, logits up to {expected.abs().max().item():.2f}")
        assert apart <= 1e-5 and expected.abs().max() > 1e-2


{"save": save, "compare": compare}[sys.argv[3]]()
